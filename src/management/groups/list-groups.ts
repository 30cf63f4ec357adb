import { z } from 'zod'
import { decimalText } from '../../domain/decimal.ts'
import type { Settings } from '../../domain/settings.ts'
import { GatewayError } from '../../errors.ts'
import { budgetFields, groupBudgets } from '../account-limits.ts'
import { readInput, textField } from '../input-fields.ts'
import type { AdministrationServices, ManagementServices } from '../services.ts'

/** Maximum number of members that are listed by name. */
const MAX_NAMED_MEMBERS = 100

type GroupServices = Pick<ManagementServices, 'store' | 'settings' | 'nowMs'>

/** A group: its terms, its budget, who belongs to it and what it may call. */
export const groupSchema = z.object({
  group: z.string(),
  ratio: z.string().describe('factor of all prices, as a decimal'),
  open: z.boolean().describe('whether keys of any user may name the group'),
  guards: z.array(z.string()),
  members: z.int().describe('number of users whose group it is'),
  models: z.array(z.string()).describe('models that its channels serve'),
  channels: z.array(z.string()).describe('channels that serve it'),
  ...budgetFields,
})

export type GroupObject = z.output<typeof groupSchema>

/** All groups, and whether gateway.yaml declares each. */
export const groupsOfAllSchema = z.array(
  groupSchema.extend({ managed: z.boolean().describe('whether gateway.yaml declares it') }),
)

/** All groups as the console shows them. */
export async function listManagedGroups(
  services: GroupServices & Pick<AdministrationServices, 'liveConfig'>,
): Promise<z.output<typeof groupsOfAllSchema>> {
  const { groups: declared } = services.liveConfig.declared
  return (await listGroups(services)).map((one) => ({ ...one, managed: declared.has(one.group) }))
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

/** The name of a group. */
export const groupField = textField(EXPECTED).min(1, { error: EXPECTED }).max(200, { error: EXPECTED })

const INPUT = z.object({ group: groupField }, { error: 'expected an object that names a group' })

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
    guards: [...(group?.guards ?? [])],
    models: [...new Set(serving.flatMap(({ models }) => models))].toSorted(),
    channels: serving.map((channel) => channel.name),
  }
}
