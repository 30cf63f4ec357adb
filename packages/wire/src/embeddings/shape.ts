import { defineShape } from '../shape/define-shape.ts'

/** Embeddings. https://platform.openai.com/docs/api-reference/embeddings/create */
export const EMBEDDINGS_REQUEST = defineShape({
  Request: {
    dimensions: 'number',
    encoding_format: 'term',
    input: 'text of user',
    model: 'name',
    user: 'text',
  },
})
