/** Header in which Bedrock states the tier that served a call, and in which requests name one. */
export const BEDROCK_TIER_HEADER = 'x-amzn-bedrock-service-tier'

/** Header of Vertex with the same meaning. */
export const VERTEX_TIER_HEADER = 'x-vertex-ai-llm-shared-request-type'
