/** Models of the demo's upstreams, by protocol. */
export const DEMO_MODELS = {
  chat: ['demo-chat', 'demo-reason'],
  messages: ['demo-claude'],
  responses: ['demo-responses'],
  gemini: ['demo-gemini'],
  rerank: ['demo-rerank'],
} as const
