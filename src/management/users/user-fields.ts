import { z } from 'zod'
import { characterCount } from '../../domain/character-count.ts'
import { USER, type User } from '../../domain/records/user.ts'
import type { Settings } from '../../domain/settings.ts'
import { parseVendorRoutes } from '../../domain/vendor-routes.ts'
import { GatewayError } from '../../errors.ts'
import { fieldsWith } from '../../domain/records/record.ts'
import { textField } from '../text-fields.ts'

/** The fields that users may change about themselves. */
export const OWN_FIELDS = fieldsWith(USER.fields, 'edit', 'holder')

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

/** An e-mail address; empty for none. */
export const emailField = z.union([z.literal(''), z.email({ error: EMAIL }).max(254, { error: EMAIL })], {
  error: EMAIL,
})

const USER_ID = 'expected the id of a user'

/** The id of a user in JSON. */
export const userIdField = z.int({ error: USER_ID }).positive({ error: USER_ID })

/** The id of a user in a path, as digits. */
export const userIdText = z
  .string()
  .regex(/^\d{1,16}$/, { error: USER_ID })
  .transform(Number)
  .refine((id) => Number.isSafeInteger(id) && id > 0, { error: USER_ID })

/** Throws if the configuration does not declare a group; `field` is its name in the message. */
export function requireGroup(settings: Settings, group: string, field = 'group'): void {
  if (settings.groups.has(group)) return
  throw new GatewayError('invalid_request', `${field}: there is no group "${group}" in the configuration`)
}

/** Throws if a token's routing names a group that a token of this user may not name. */
export function requireGroups(
  settings: Settings,
  user: User,
  { group, vendor_routes }: { readonly group?: string; readonly vendor_routes?: string },
): void {
  if (group) requireTokenGroup(settings, user, group)
  for (const named of parseVendorRoutes(vendor_routes ?? '')?.values() ?? [])
    requireTokenGroup(settings, user, named, 'vendor_routes')
}

// Throws for an unknown group, and for a closed one that is not the user's.
function requireTokenGroup(settings: Settings, user: User, group: string, field = 'group'): void {
  requireGroup(settings, group, field)
  if (group === user.group || settings.groups.get(group)?.open) return
  throw new GatewayError(
    'invalid_request',
    `${field}: "${group}" is closed, and not the group of the user "${user.username}"`,
  )
}
