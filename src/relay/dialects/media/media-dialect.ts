import type { Endpoint } from '../../../domain/endpoints.ts'
import { mediaNames } from '../../../protocols/media/index.ts'
import type { ScannedObject } from '../../../protocols/json/scanned-object.ts'
import type { FormBody } from '../../body-reader.ts'
import type { Dialect, Reader, RelayedRequest } from '../dialect.ts'

/** An endpoint as clients call it with forms. */
export interface FormDialect extends Omit<Dialect, 'read'> {
  /** Checks a request; throws `invalid_request` naming the field. */
  read(form: FormBody, reader: Reader): RelayedRequest | Promise<RelayedRequest>
}

const SERVED = {
  name: 'chat',
  names: mediaNames,
  // Nothing is converted: only servers of this protocol have these endpoints.
  servedBy: ['chat'],
} as const

/** An endpoint for images or audio that takes JSON. */
export function jsonMedia(endpoint: Endpoint, read: (scan: ScannedObject) => RelayedRequest): Dialect {
  return { ...SERVED, endpoint, read: (scan) => read(scan) }
}

/** An endpoint for images or audio that takes forms. */
export function formMedia(endpoint: Endpoint, read: FormDialect['read']): FormDialect {
  return { ...SERVED, endpoint, read }
}
