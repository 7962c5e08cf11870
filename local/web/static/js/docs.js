// The API reference, rendered from the OpenAPI document. "Try it out" calls the running local
// server.
window.SwaggerUIBundle({
  url: "/docs/consumer.openapi.yaml",
  dom_id: "#docs",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  validatorUrl: null, // the default sends the document to an external service
  tryItOutEnabled: true,
  requestInterceptor: request => {
    // POST /handoff requires an Idempotency-Key, new for every request.
    if (request.method === "POST" && request.url.endsWith("/handoff") && !request.headers["Idempotency-Key"]) request.headers["Idempotency-Key"] = crypto.randomUUID()
    return request
  },
})
