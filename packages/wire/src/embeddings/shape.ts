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

/** Embeddings. https://platform.openai.com/docs/api-reference/embeddings/object */
export const EMBEDDINGS_ANSWER = defineShape(
  {
    Answer: { data: 'Vector', id: 'id', model: 'name', object: 'term', usage: 'term of provider' },
    Vector: { embedding: 'media', index: 'number', object: 'term' },
  },
  undefined,
  'Answer',
)
