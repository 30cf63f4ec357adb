import { z } from 'zod'
import { findUser, noUser } from './find-user.ts'
import type { ManagementParts } from '../parts.ts'
import { maxQuota, requireQuota } from '../quota-bound.ts'
import { readInput, userField } from '../read-input.ts'
import { type UserObject, userObject } from './user-object.ts'

const INPUT = z.object(
  {
    user: userField,
    amount: z.int({ error: 'expected a whole number of quota units' }),
  },
  { error: 'expected an object that names a user and an amount' },
)

/** Adds quota units to a user's balance; they are available when this resolves. */
export async function topUpUser(parts: ManagementParts, given: z.input<typeof INPUT>): Promise<UserObject> {
  const { store, ledger, settings } = parts
  const { user: idOrName, amount } = readInput(INPUT, given)
  requireQuota('amount', amount, 1, settings())
  const { id } = await findUser(store, idOrName)
  const quota = { mode: 'add', value: amount, maxQuota: maxQuota(settings()) } as const
  return userObject(parts, (await ledger.changeUser({ userId: id, quota })) ?? noUser(idOrName))
}
