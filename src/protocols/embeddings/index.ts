/** Public interface of the embeddings dialect. */
export { EMBEDDINGS_LIMITS } from './limits.ts'
export { embeddingsRequestSchema, readEmbeddingsRequest } from './request.ts'
export { promptText } from './prompt.ts'
export { readEmbeddingsReply } from './reply.ts'
export { decodeTexts, encodeTexts } from './texts.ts'
export { decodeVectors, encodeVectors } from './vectors.ts'
