// Swagger UI for this service; it sends no requests to other hosts.
window.ui = SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger",
  validatorUrl: null,
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
});
