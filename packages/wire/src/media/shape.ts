import { defineShape } from '../shape/define-shape.ts'

/** Making and editing images. https://platform.openai.com/docs/api-reference/images/create */
export const IMAGES_REQUEST = defineShape({
  Request: {
    background: 'term',
    image: 'media | Image of user',
    images: 'media | Image of user',
    input_fidelity: 'term',
    mask: 'media | Image of user',
    model: 'name',
    moderation: 'term',
    n: 'number',
    output_compression: 'number',
    output_format: 'term',
    partial_images: 'number',
    prompt: 'text of user',
    quality: 'term',
    response_format: 'term',
    size: 'term',
    stream: 'number',
    style: 'term',
    user: 'text',
  },
  Image: { file_id: 'id', image_url: 'address | Image', type: 'term', url: 'address' },
})

/** Speech from a text. https://platform.openai.com/docs/api-reference/audio/createSpeech */
export const SPEECH_REQUEST = defineShape({
  Request: {
    input: 'text of user',
    instructions: 'text of system',
    language: 'term',
    model: 'name',
    response_format: 'term',
    speed: 'number',
    stream_format: 'term',
    voice: 'term',
  },
})
