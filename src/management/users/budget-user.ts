import { z } from 'zod'
import { termChanges, termFields } from '../call-terms.ts'
import type { ManagementParts } from '../parts.ts'
import { readInput, userField } from '../read-input.ts'
import { findUser, noUser } from './find-user.ts'
import { type UserObject, userObject } from './user-object.ts'

const { budget, budget_period } = termFields

const INPUT = z.object(
  { user: userField, budget, budget_period },
  { error: 'expected an object that names a user and a budget' },
)

/**
 * Sets a user's budget, for the next call on. A new amount keeps the period, and a new period the amount; 0
 * removes both. A budget declared in gateway.yaml is restored when the file is next read.
 */
export async function budgetUser(parts: ManagementParts, given: z.input<typeof INPUT>): Promise<UserObject> {
  const { store, ledger, apiKeys, settings } = parts
  const { user: idOrName, ...fields } = readInput(INPUT, given)
  const { id: userId, budget: before } = await findUser(store, idOrName)
  const terms = termChanges(fields, before, settings())
  const user = (await ledger.changeUser({ userId, fields: { terms } })) ?? noUser(idOrName)
  apiKeys.forgetUser(userId)
  return userObject(parts, user)
}
