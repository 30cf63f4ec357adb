import { z } from 'zod'
import { type ManagedUser, USER } from '../../domain/records/user.ts'
import { GatewayError } from '../../errors.ts'
import { type Actor, fairQueueKey, requireAssignable, requireManageable, roleCeiling } from '../authority.ts'
import { termChanges, termFields, termsObject } from '../call-terms.ts'
import { versionField, withPresent } from '../expected-version.ts'
import type { ManagementParts } from '../parts.ts'
import { maxQuota, requireQuota } from '../quota-bound.ts'
import { readInput, userField } from '../read-input.ts'
import { bodyShape, storedFields } from '../record-schemas.ts'
import { findUser, noUser } from './find-user.ts'
import { managedUserObject, userTerms } from './profile-object.ts'
import {
  emailField,
  keepAccessTokensField,
  OWN_FIELDS,
  passwordField,
  requireGroup,
  userIdField,
} from './user-fields.ts'
import { type UserObject, userObject } from './user-object.ts'

/** The fields of a change of a user; null counts as absent. */
export const changedUserInput = z.object(
  {
    id: userIdField,
    ...bodyShape(USER.fields, 'change'),
    email: emailField.nullish(),
    password: passwordField.nullish(),
    keep_access_tokens: keepAccessTokensField.nullish(),
    version: versionField.nullish(),
    ...termFields,
  },
  { error: 'expected an object with the id of a user and the fields to change' },
)

type UserChange = z.output<typeof changedUserInput>

/** The fields that administrators may change about themselves; an equal value does not count as a change. */
const CHANGED_BY_SELF: ReadonlySet<string> = new Set([
  'id',
  ...Object.keys(OWN_FIELDS),
  'email',
  'remark',
  'keep_access_tokens',
  'version',
])

/**
 * Changes all or none of the given fields. A quota replaces the current one, and running calls are settled
 * against it. A new password ends the user's sessions, and one that replaces another also revokes the access
 * token.
 */
export async function changeUser(parts: ManagementParts, input: UserChange, by: Actor): Promise<ManagedUser> {
  const { store, ledger, apiKeys, passwords, settings, nowMs } = parts
  const { id: userId } = input
  const before = (await store.read('managedUser', { userId })) ?? noUser(userId)
  const isOwn = roleCeiling(by) !== undefined && userId === by.id
  if (isOwn) refuseOwn({ ...before, ...(await termsObject(store, userTerms(before), nowMs())) }, input)
  else requireManageable(by, before)
  const { username, group, role, quota, password } = changesOf(before, input)
  if (role !== undefined) requireAssignable(by, role)
  if (group !== undefined) requireGroup(settings(), group)
  if (quota !== undefined) requireQuota('quota', quota, 0, settings())
  const { quota: _, ...stored } = storedFields(USER.fields, input)
  const change = {
    userId,
    version: input.version ?? undefined,
    fields: {
      ...stored,
      username,
      group,
      role,
      terms: termChanges(input, before.budget, settings()),
      passwordHash: password === undefined ? undefined : await passwords.hash(password, fairQueueKey(by)),
    },
    quota:
      quota === undefined
        ? undefined
        : { mode: 'override' as const, value: quota, maxQuota: maxQuota(settings()) },
    keepAccessTokens: input.keep_access_tokens ?? false,
    roleBelow: isOwn ? undefined : roleCeiling(by),
  }
  const user = await withPresent(
    () => ledger.changeUser(change),
    async () => {
      const present = await store.read('managedUser', { userId })
      return present ? managedUserObject(parts, present) : undefined
    },
  )
  apiKeys.forgetUser(userId)
  return user ?? noUser(userId)
}

/** The fields that need further checks, if they differ from the current values. */
function changesOf(before: ManagedUser, { username, group, role, quota, password }: UserChange) {
  return {
    username: username === before.username ? undefined : (username ?? undefined),
    group: group === before.group ? undefined : (group ?? undefined),
    role: role === before.role ? undefined : (role ?? undefined),
    quota: quota ?? undefined,
    password: password ?? undefined,
  }
}

function refuseOwn(now: Readonly<Record<string, unknown>>, input: UserChange): void {
  for (const [field, value] of Object.entries(input)) {
    if (CHANGED_BY_SELF.has(field) || value === null || value === undefined || value === now[field]) continue
    throw new GatewayError('role_too_low', `${field}: only a user with a higher role may change this for you`)
  }
}

const TOP_UP_INPUT = z.object(
  {
    user: userField,
    amount: z.int({ error: 'expected a whole number of quota units' }),
  },
  { error: 'expected an object that names a user and an amount' },
)

/** Adds quota units to a user's balance; they are available when this resolves. */
export async function topUpUser(
  parts: ManagementParts,
  given: z.input<typeof TOP_UP_INPUT>,
): Promise<UserObject> {
  const { store, ledger, settings } = parts
  const { user: idOrName, amount } = readInput(TOP_UP_INPUT, given)
  requireQuota('amount', amount, 1, settings())
  const { id } = await findUser(store, idOrName)
  const quota = { mode: 'add', value: amount, maxQuota: maxQuota(settings()) } as const
  return userObject(parts, (await ledger.changeUser({ userId: id, quota })) ?? noUser(idOrName))
}

const { budget, budget_period } = termFields

const BUDGET_INPUT = z.object(
  { user: userField, budget, budget_period },
  { error: 'expected an object that names a user and a budget' },
)

/**
 * Sets a user's budget, for the next call on. A new amount keeps the period, and a new period the amount; 0
 * removes both. A budget declared in gateway.yaml is restored when the file is next read.
 */
export async function budgetUser(
  parts: ManagementParts,
  given: z.input<typeof BUDGET_INPUT>,
): Promise<UserObject> {
  const { store, ledger, apiKeys, settings } = parts
  const { user: idOrName, ...fields } = readInput(BUDGET_INPUT, given)
  const { id: userId, budget: before } = await findUser(store, idOrName)
  const terms = termChanges(fields, before, settings())
  const user = (await ledger.changeUser({ userId, fields: { terms } })) ?? noUser(idOrName)
  apiKeys.forgetUser(userId)
  return userObject(parts, user)
}
