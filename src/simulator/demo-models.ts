/** Models of the demo's upstreams, by protocol. */
export const DEMO_MODELS = {
  chat: ['demo-chat', 'demo-reason'],
  messages: ['demo-claude'],
  responses: ['demo-responses'],
  rerank: ['demo-rerank'],
} as const
