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

/**
 * Images, whole and in events. https://platform.openai.com/docs/api-reference/images/object
 * https://platform.openai.com/docs/api-reference/images-streaming
 */
export const IMAGES_ANSWER = defineShape(
  {
    Answer: {
      b64_json: 'media',
      background: 'term',
      created: 'number',
      created_at: 'number',
      data: 'Image',
      error: 'Error of provider',
      output_format: 'term',
      partial_image_index: 'number',
      quality: 'term',
      revised_prompt: 'text',
      size: 'term',
      type: 'term',
      usage: 'term of provider',
    },
    Image: { b64_json: 'media', revised_prompt: 'text', url: 'address' },
    Error: { code: 'term', message: 'text', param: 'term', type: 'term' },
  },
  undefined,
  'Answer',
)

/**
 * Transcripts of recordings, whole and in events. https://platform.openai.com/docs/api-reference/audio/json-object
 * https://platform.openai.com/docs/api-reference/audio/verbose-json-object
 */
export const TRANSCRIPT_ANSWER = defineShape(
  {
    Answer: {
      delta: 'text',
      duration: 'number',
      end: 'number',
      error: 'Error of provider',
      id: 'id',
      language: 'term',
      logprobs: 'tokens',
      segment_id: 'id',
      segments: 'Segment',
      speaker: 'text',
      start: 'number',
      task: 'term',
      text: 'text',
      type: 'term',
      usage: 'term of provider',
      words: 'Word',
    },
    Segment: {
      avg_logprob: 'number',
      compression_ratio: 'number',
      end: 'number',
      id: 'id',
      no_speech_prob: 'number',
      seek: 'number',
      speaker: 'text',
      start: 'number',
      temperature: 'number',
      text: 'text',
      tokens: 'tokens',
      type: 'term',
    },
    Word: { end: 'number', start: 'number', word: 'text' },
    Error: { code: 'term', message: 'text', param: 'term', type: 'term' },
  },
  undefined,
  'Answer',
)
