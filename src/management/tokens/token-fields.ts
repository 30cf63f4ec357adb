import { z } from 'zod'
import { TOKEN } from '../../domain/records/token.ts'
import { termFields } from '../call-terms.ts'
import { versionField } from '../expected-version.ts'
import { bodyShape } from '../record-schemas.ts'
import { TOKEN_ID } from './token-id.ts'

/** The fields of a new token; null in an optional field counts as absent. `docs/api.md: Token management`. */
export const newTokenFields = z.object(
  { ...bodyShape(TOKEN.fields, 'new'), ...termFields },
  { error: 'expected an object with the fields of a token' },
)

/** The fields of a new token as clients send them. */
export type NewTokenFields = z.input<typeof newTokenFields>

/** A change of a token; null counts as absent, except in `allow_ips`, where it is a value. */
export const changedTokenFields = z.object(
  { id: TOKEN_ID.id, ...bodyShape(TOKEN.fields, 'change'), ...termFields, version: versionField.nullish() },
  { error: 'expected an object with the id of a token' },
)
