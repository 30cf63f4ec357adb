import type { JsonSchema } from '../with-schema.ts'

const TEXT: JsonSchema = { type: 'string' }
const FILE: JsonSchema = { type: 'string', format: 'binary' }
const MODEL: JsonSchema = { type: 'string', minLength: 1, maxLength: 256 }
const FLAG: JsonSchema = { type: 'boolean' }
const IMAGE_FIELDS: Readonly<Record<string, JsonSchema>> = {
  model: MODEL,
  prompt: TEXT,
  n: { type: 'integer', minimum: 1, maximum: 128 },
  size: TEXT,
  quality: TEXT,
  stream: FLAG,
  partial_images: { type: 'integer', minimum: 0, maximum: 10 },
}

/** Builds the JSON Schema of requests for images. Fields outside it pass unchanged. */
export function imageRequestSchema(): JsonSchema {
  return { type: 'object', required: ['model'], properties: IMAGE_FIELDS }
}

/** Builds the schema of forms that request images made from others. */
export function imageFormSchema(): JsonSchema {
  const properties = { ...IMAGE_FIELDS, 'image[]': { type: 'array', items: FILE }, mask: FILE }
  return { type: 'object', required: ['model'], properties }
}

/** Builds the schema of forms that request variations of an image. */
export function variationFormSchema(): JsonSchema {
  const { model, n, size } = IMAGE_FIELDS as Readonly<Record<'model' | 'n' | 'size', JsonSchema>>
  return { type: 'object', required: ['model', 'image'], properties: { model, n, size, image: FILE } }
}

/** Builds the JSON Schema of requests for speech. */
export function speechRequestSchema(): JsonSchema {
  const properties = {
    model: MODEL,
    input: TEXT,
    instructions: TEXT,
    response_format: TEXT,
    stream_format: TEXT,
  }
  return { type: 'object', required: ['model', 'input'], properties }
}

/** Builds the schema of forms that request transcripts. */
export function transcriptFormSchema(): JsonSchema {
  const properties = { model: MODEL, file: FILE, prompt: TEXT, response_format: TEXT, stream: FLAG }
  return { type: 'object', required: ['model', 'file'], properties }
}
