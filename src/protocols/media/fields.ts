import { GatewayError } from '../../errors.ts'
import { isPresent, refuse } from '../field-check.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import type { FormPart } from '../multipart/form-reader.ts'

const MAX_MODEL_LENGTH = 256

/** Fields of a request, however it was sent. */
export interface Fields {
  /** The value of a field; undefined where it is absent, null or empty. */
  get(name: string): unknown
}

/** The members of a JSON object. */
export function jsonFields(scan: ScannedObject): Fields {
  return { get: (name) => (isPresent(scan, name) ? scan.value(name) : undefined) }
}

/** The fields of a form, which are all texts; throws `invalid_request` for one that is sent twice. */
export function formFields(parts: readonly FormPart[]): Fields {
  return { get: (name) => onlyField(parts, name)?.text || undefined }
}

/** The only field of that name; throws `invalid_request` where there are two, or a file in its place. */
function onlyField(parts: readonly FormPart[], name: string): FormPart | undefined {
  const [first, second] = parts.filter((part) => part.name === name)
  if (second) throw new GatewayError('invalid_request', `the form has two fields '${name}'`)
  if (first?.filename !== undefined) refuse(name, 'a field', 'a file')
  return first
}

/** The model's name; throws `invalid_request` without a valid one. */
export function modelIn(fields: Fields): string {
  const name = fields.get('model')
  if (name === undefined || name === '') throw new GatewayError('invalid_request', "'model' is required.")
  if (typeof name !== 'string' || name.length > MAX_MODEL_LENGTH || /\p{Cc}/u.test(name))
    refuse('model', `a name of 1 to ${MAX_MODEL_LENGTH} characters`, 'another value')
  return name
}

/** A text; throws `invalid_request` for another value. */
export function textIn(fields: Fields, name: string): string | undefined {
  const value = fields.get(name)
  if (value === undefined || typeof value === 'string') return value
  return refuse(name, 'a string', 'another value')
}

/** Whether a flag is set, in JSON or as a text. */
export function flagIn(fields: Fields, name: string): boolean {
  const value = fields.get(name)
  if (value === undefined || value === false || value === 'false' || value === 'False' || value === '0')
    return false
  if (value === true || value === 'true' || value === 'True' || value === '1') return true
  return refuse(name, 'true or false', 'another value')
}

/** A whole number, in JSON or as a text; throws `invalid_request` for one that is out of range. */
export function integerIn(fields: Fields, name: string, from: number, to: number): number | undefined {
  const value = fields.get(name)
  if (value === undefined) return undefined
  const number = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value
  if (typeof number === 'number' && Number.isInteger(number) && number >= from && number <= to) return number
  return refuse(name, `an integer from ${from} to ${to}`, 'another value')
}
