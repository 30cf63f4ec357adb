import { z } from 'zod'
import { TOKEN } from '../../domain/records/token.ts'
import { termFields } from '../call-terms.ts'
import { changeShape, createShape } from '../record-schemas.ts'

const FIELDS_EXPECTED = { error: 'expected an object with the fields of a token' }

/** The fields of a new token; null in an optional field is absence. `docs/api.md: Token management`. */
export const newTokenFields = z.object({ ...createShape(TOKEN.fields), ...termFields }, FIELDS_EXPECTED)

/** The fields of a change, all optional; null is absence, except in `allow_ips`, where it is a value. */
export const changedTokenFields = z.object({ ...changeShape(TOKEN.fields), ...termFields }, FIELDS_EXPECTED)
