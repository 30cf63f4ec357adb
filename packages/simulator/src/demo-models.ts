/** Models of the demo's upstreams, by protocol or endpoint. */
export const DEMO_MODELS = {
  chat: ['demo-chat', 'demo-reason'],
  messages: ['demo-claude'],
  responses: ['demo-responses'],
  gemini: ['demo-gemini'],
  bedrock: ['demo-bedrock-claude', 'demo-bedrock-nova'],
  rerank: ['demo-rerank'],
  embeddings: ['demo-embed'],
  media: ['demo-image', 'demo-speech', 'demo-transcribe'],
} as const
