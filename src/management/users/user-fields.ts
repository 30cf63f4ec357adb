import { z } from 'zod'
import { characterCount } from '../../domain/character-count.ts'
import { USER } from '../../domain/records/user.ts'
import { editable } from '../record-schemas.ts'
import { textField } from '../text-fields.ts'

/** The fields that users change of themselves. */
export const OWN_FIELDS = editable(USER.fields, 'holder')

const PASSWORD = 'expected a text of 8 to 128 characters'

/** A new password: 8 to 128 grapheme clusters. */
export const passwordField = textField(PASSWORD).refine(
  (text) => {
    if (!text.isWellFormed()) return false
    const count = characterCount(text)
    return count >= 8 && count <= 128
  },
  { error: PASSWORD },
)

/** A password to verify. */
export const claimedPasswordField = textField('expected a password')

const KEEP = 'expected true or false'

/** Whether a password change keeps the access token. */
export const keepAccessTokensField = z.boolean({ error: KEEP })

const EMAIL = 'expected an e-mail address, or an empty text'

/** An e-mail address; empty = none. */
export const emailField = z.union([z.literal(''), z.email({ error: EMAIL }).max(254, { error: EMAIL })], {
  error: EMAIL,
})

const USER_ID = 'expected the id of a user'

/** The id of a user in JSON. */
export const userIdField = z.int({ error: USER_ID }).positive({ error: USER_ID })

/** The id of a user in a path, in digits. */
export const userIdText = z
  .string()
  .regex(/^\d{1,16}$/, { error: USER_ID })
  .transform(Number)
  .refine((id) => Number.isSafeInteger(id) && id > 0, { error: USER_ID })
