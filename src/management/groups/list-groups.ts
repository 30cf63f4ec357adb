import { z } from 'zod'
import { decimalText } from '../../domain/decimal.ts'
import type { Settings } from '../../domain/settings.ts'
import { GatewayError } from '../../errors.ts'
import { groupBudgets } from '../account-limits.ts'
import { readInput, textField } from '../input-fields.ts'
import type { ManagementServices } from '../services.ts'

/** Maximum number of members that are listed by name. */
const MAX_NAMED_MEMBERS = 100

type GroupServices = Pick<ManagementServices, 'store' | 'settings' | 'nowMs'>

/** A group: its terms, its budget, who belongs to it and what it may call. */
export interface GroupObject {
  readonly group: string
  /** Factor of all prices, as a decimal. */
  readonly ratio: string
  /** Whether any user's key may name the group. */
  readonly open: boolean
  readonly guards: readonly string[]
  /** Number of users whose group it is. */
  readonly members: number
  /** Names of models that its channels serve. */
  readonly models: readonly string[]
  /** Names of the enabled channels that serve it. */
  readonly channels: readonly string[]
  readonly budget: number
  readonly budget_period: string
  readonly budget_used: number
  readonly budget_held: number
  readonly budget_resets_at: number
}

/** All groups, in the order of their names. */
export async function listGroups(services: GroupServices): Promise<GroupObject[]> {
  const settings = services.settings()
  const budgets = await groupBudgets(services)
  return Promise.all(
    budgets.map(async ({ group, ...budget }) => ({
      ...termsOf(settings, group),
      members: (await membersOf(services, group, 0)).total,
      ...budget,
    })),
  )
}

const EXPECTED = 'expected the name of a group'
const INPUT = z.object({ group: textField(EXPECTED) }, { error: 'expected an object that names a group' })

/** One group, with the names of its first members. */
export async function showGroup(
  services: GroupServices,
  given: z.input<typeof INPUT>,
): Promise<GroupObject & { readonly member_names: readonly string[] }> {
  const { group } = readInput(INPUT, given)
  const settings = services.settings()
  if (!settings.groups.has(group)) throw new GatewayError('not_found', `there is no group "${group}"`)
  const budget = (await groupBudgets(services)).find((one) => one.group === group)
  const { total, users } = await membersOf(services, group, MAX_NAMED_MEMBERS)
  return {
    ...termsOf(settings, group),
    members: total,
    ...(budget as NonNullable<typeof budget>),
    member_names: users.map(({ username }) => username),
  }
}

function membersOf({ store }: GroupServices, group: string, limit: number) {
  return store.read('pageOfUsers', { keyword: '', group, offset: 0, limit })
}

function termsOf({ groups, channels }: Settings, name: string) {
  const group = groups.get(name)
  const serving = channels.filter((channel) => channel.groups.includes(name))
  return {
    group: name,
    ratio: group ? decimalText(group.ratio) : '1',
    open: group?.open ?? false,
    guards: group?.guards ?? [],
    models: [...new Set(serving.flatMap(({ models }) => models))].toSorted(),
    channels: serving.map((channel) => channel.name),
  }
}
