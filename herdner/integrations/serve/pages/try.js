// Swagger UI on the service's own description; nothing is asked for elsewhere.
window.ui = SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger",
  validatorUrl: null,
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
});
