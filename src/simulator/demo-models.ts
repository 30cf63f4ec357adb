/** Models of the demo's upstreams, by protocol. */
export const DEMO_MODELS = {
  chat: ['demo-chat', 'demo-reason'],
  messages: ['demo-claude'],
  rerank: ['demo-rerank'],
} as const
