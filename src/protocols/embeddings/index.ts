/** Public interface of the embeddings dialect. */
export { EMBEDDINGS_LIMITS } from './limits.ts'
export { embeddingsRequestSchema, readEmbeddingsRequest, type VectorForm } from './request.ts'
export { promptText } from './prompt.ts'
export { EmbeddingsReply } from './reply.ts'
export { decodeTexts, encodeTexts } from './texts.ts'
export { readVectors, VectorsWriter } from './vectors.ts'
