/** Embeddings of models on Bedrock. */
export { cohereForm } from './cohere.ts'
export { titanForm } from '../bedrock-embed.ts'
