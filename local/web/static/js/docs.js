// The API reference, rendered from the one description of the API; its requests go to the system that runs.
window.SwaggerUIBundle({
  url: "/docs/consumer.openapi.yaml",
  dom_id: "#docs",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  validatorUrl: null, // it would send the description to a service outside
  tryItOutEnabled: true,
  requestInterceptor: request => {
    // Requests that are refused without it; its value must differ each time.
    if (request.method === "POST" && request.url.endsWith("/handoff") && !request.headers["Idempotency-Key"]) request.headers["Idempotency-Key"] = crypto.randomUUID()
    return request
  },
})
