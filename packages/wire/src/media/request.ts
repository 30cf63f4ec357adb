import { isPresent, type JsonSchema, refuseField } from '../field-check.ts'
import { WireError } from '../wire-error.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import type { FormPart } from '../multipart.ts'
import { requestNames } from '../request-names.ts'
import { IMAGES_REQUEST, SPEECH_REQUEST } from './shape.ts'

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

/** Returns the JSON Schema of requests for images. Other fields are forwarded unchanged. */
export function imageRequestSchema(): JsonSchema {
  return { type: 'object', required: ['model'], properties: IMAGE_FIELDS }
}

/** Returns the schema of forms that request edits of images. */
export function imageFormSchema(): JsonSchema {
  const properties = { ...IMAGE_FIELDS, 'image[]': { type: 'array', items: FILE }, mask: FILE }
  return { type: 'object', required: ['model'], properties }
}

/** Returns the schema of forms that request variations of an image. */
export function variationFormSchema(): JsonSchema {
  const { model, n, size } = IMAGE_FIELDS as Readonly<Record<'model' | 'n' | 'size', JsonSchema>>
  return { type: 'object', required: ['model', 'image'], properties: { model, n, size, image: FILE } }
}

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

export function transcriptFormSchema(): JsonSchema {
  const properties = { model: MODEL, file: FILE, prompt: TEXT, response_format: TEXT, stream: FLAG }
  return { type: 'object', required: ['model', 'file'], properties }
}

const MAX_MODEL_LENGTH = 256

/** The fields of a request, which may be a JSON object or a form. */
export interface Fields {
  /** The value of a field; undefined if it is absent, null or empty. */
  get(name: string): unknown
}

/** The members of a JSON object. */
export function jsonFields(scan: ScannedObject): Fields {
  return { get: (name) => (isPresent(scan, name) ? scan.value(name) : undefined) }
}

/** The fields of a form; their values are texts. Throws `invalid_request` for a field that is sent twice. */
export function formFields(parts: readonly FormPart[]): Fields {
  return { get: (name) => onlyField(parts, name)?.text || undefined }
}

/** Returns the field with this name. Throws `invalid_request` if there are several, or if it is a file. */
function onlyField(parts: readonly FormPart[], name: string): FormPart | undefined {
  const [first, second] = parts.filter((part) => part.name === name)
  if (second) throw new WireError('invalid_request', `the form has two fields '${name}'`)
  if (first?.filename !== undefined) refuseField(name, 'a field', 'a file')
  return first
}

/** Returns the model's name. Throws `invalid_request` if it is missing or invalid. */
export function requireModelField(fields: Fields): string {
  const name = fields.get('model')
  if (name === undefined || name === '') throw new WireError('invalid_request', "'model' is required.")
  if (typeof name !== 'string' || name.length > MAX_MODEL_LENGTH || /\p{Cc}/u.test(name))
    refuseField('model', `a name of 1 to ${MAX_MODEL_LENGTH} characters`, 'another value')
  return name
}

/**
 * Returns a field that is a text; undefined if it is absent. Throws `invalid_request` for any other value.
 */
export function readTextField(fields: Fields, name: string): string | undefined {
  const value = fields.get(name)
  if (value === undefined || typeof value === 'string') return value
  return refuseField(name, 'a string', 'another value')
}

/**
 * Reads a flag, given as a boolean or as a text such as "true" or "1". Throws `invalid_request` for any other
 * value.
 */
export function readFlagField(fields: Fields, name: string): boolean {
  const value = fields.get(name)
  if (value === undefined || value === false || value === 'false' || value === 'False' || value === '0')
    return false
  if (value === true || value === 'true' || value === 'True' || value === '1') return true
  return refuseField(name, 'true or false', 'another value')
}

/**
 * Returns a field that is an integer, given as a number or as a text. Throws `invalid_request` if it is out
 * of range.
 */
export function readIntegerField(fields: Fields, name: string, from: number, to: number): number | undefined {
  const value = fields.get(name)
  if (value === undefined) return undefined
  const number = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value
  if (typeof number === 'number' && Number.isInteger(number) && number >= from && number <= to) return number
  return refuseField(name, `an integer from ${from} to ${to}`, 'another value')
}

/**
 * Names of the fields of requests for images or audio, in JSON and in forms. They must be spelled exactly.
 */
export const mediaFieldNames = requestNames(
  [...Object.keys(SPEECH_REQUEST.tables['Request'] ?? {}), 'file'],
  IMAGES_REQUEST,
)
