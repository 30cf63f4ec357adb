import { defineShape } from '../shape/define-shape.ts'

/** Moderations. https://platform.openai.com/docs/api-reference/moderations/create */
export const MODERATIONS_REQUEST = defineShape({
  Request: { input: 'text | Part of user', model: 'name' },
  Part: { image_url: 'address | Image', text: 'text', type: 'term' },
  Image: { url: 'address' },
})
