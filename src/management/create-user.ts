import { z } from 'zod'
import { groupField, nameField, readInput } from './read-input.ts'
import { requireGroup } from './allowed-group.ts'
import type { ManagementParts } from './parts.ts'
import { requireQuota } from './quota-bound.ts'
import { type UserObject, userObject } from './user-object.ts'

const INPUT = z.object(
  {
    username: nameField(64),
    role: z
      .union([z.literal(1), z.literal(10), z.literal(100)], {
        error: 'expected 1 (common user), 10 (admin) or 100 (root)',
      })
      .default(1),
    group: groupField().default('default'),
    quota: z.int({ error: 'expected a whole number of quota units' }).default(0),
  },
  { error: 'expected an object with the fields of a user' },
)

/** Makes an enabled user without access token. A taken name, an unknown group or a quota out of bounds is refused. */
export async function createUser(
  { store, settings, nowMs }: ManagementParts,
  given: z.input<typeof INPUT>,
): Promise<UserObject> {
  const { username, role, group, quota } = readInput(INPUT, given)
  requireGroup(settings(), group)
  requireQuota('quota', quota, 0, settings())
  const user = await store.write('createUser', {
    username,
    role,
    status: 1,
    group,
    quota,
    accessToken: null,
    createdTime: Math.floor(nowMs() / 1000),
  })
  return userObject(user)
}
