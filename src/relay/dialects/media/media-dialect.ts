import type { Endpoint } from '../../../domain/endpoints.ts'
import { mediaNames } from '@sluice/wire/media'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { FormBody } from '../../body-reader.ts'
import type { Dialect, Reader, ParsedRequest } from '../dialect.ts'

/** An endpoint that clients call with forms. */
export interface FormDialect extends Omit<Dialect, 'read'> {
  /** Checks a request. Throws `invalid_request` that names the field. */
  read(form: FormBody, reader: Reader): ParsedRequest | Promise<ParsedRequest>
}

const SERVED = {
  name: 'chat',
  names: mediaNames,
  // These endpoints exist only on servers of this protocol, so nothing is converted.
  servedBy: ['chat'],
} as const

/** Creates an image or audio endpoint with JSON requests. */
export function jsonMedia(endpoint: Endpoint, read: (scan: ScannedObject) => ParsedRequest): Dialect {
  return { ...SERVED, endpoint, read: (scan) => read(scan) }
}

/** Creates an image or audio endpoint with forms. */
export function formMedia(endpoint: Endpoint, read: FormDialect['read']): FormDialect {
  return { ...SERVED, endpoint, read }
}
