import { names, requestNames } from '../request-names.ts'

const image = names('type url image_url file_id')

/** Names of the fields of requests about images or audio, in JSON and in forms. */
export const mediaNames = requestNames(
  [
    'model',
    'prompt',
    'n',
    'size',
    'quality',
    'style',
    'background',
    'output_format',
    'partial_images',
    'stream',
    'input',
    'instructions',
    'voice',
    'response_format',
    'stream_format',
    'file',
    'language',
    'user',
  ],
  { image, images: image, mask: image },
)
