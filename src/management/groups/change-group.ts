import { z } from 'zod'
import { parseDecimal } from '../../domain/decimal.ts'
import type { JsonObject } from '../../domain/json.ts'
import { type Group, GROUP_SETTINGS } from '../../domain/records/group.ts'
import type { Settings, StoredConfiguration } from '../../domain/settings.ts'
import { requireVersion } from '../../domain/object-version.ts'
import { GatewayError } from '../../errors.ts'
import { addCurrentObject, repeatIfChanged, versionField } from '../expected-version.ts'
import { readInput, textField, userField } from '../input-fields.ts'
import { valueSchema } from '../record-schemas.ts'
import type { AdministrationServices } from '../services.ts'
import { groupJson, managedByFileError } from '../settings/option-mappings.ts'
import { usageLimitChanges, usageLimitFields } from '../usage-limits.ts'
import { findUser, userNotFound } from '../users/list-users.ts'
import { requireGroup, requireGuards, type UserObject, userObject } from '../users/user-object.ts'
import { type GroupObject, groupField, groupObject, groupVersion } from './list-groups.ts'

type GroupServices = Pick<AdministrationServices, 'store' | 'settings' | 'nowMs' | 'liveConfig'>

/** The group that always exists. */
const DEFAULT_GROUP = 'default'
const RATIO = 'expected a decimal from 0, such as 0.8'
const { budget, budget_period } = usageLimitFields
const { open, guards } = GROUP_SETTINGS.fields

/** Input with a group to create; absent fields get their defaults. */
export const newGroupInput = z.object(
  {
    group: groupField,
    ratio: textField(RATIO, 100)
      .refine((text) => /^\d+(?:\.\d+)?$/.test(text) && parseDecimal(text) !== undefined, { error: RATIO })
      .nullish(),
    open: valueSchema(open.type).nullish(),
    guards: valueSchema(guards.type).nullish(),
    budget,
    budget_period,
  },
  { error: 'expected an object that names a group' },
)

/** Input of a change of a group; absent fields stay as they are. */
export const changedGroupInput = newGroupInput.extend({ version: versionField.nullish() })

/** Creates a group, which is closed unless the input says otherwise. Throws if there is one of this name. */
export async function createGroup(
  services: GroupServices,
  given: z.input<typeof newGroupInput>,
): Promise<GroupObject> {
  const input = readInput(newGroupInput, given)
  await write(services, input, undefined, (settings) => {
    if (settings.groups.has(input.group))
      throw new GatewayError('invalid_request', `group: there is a group "${input.group}" already`)
    return { ...GROUP_SETTINGS.defaults, open: false }
  })
  return groupObject(services, input.group)
}

/**
 * Changes a group. Throws `managed_by_file` if gateway.yaml declares it, and `changed_meanwhile` with the present
 * group if it has another version than the given one.
 */
export async function changeGroup(
  services: GroupServices,
  given: z.input<typeof changedGroupInput>,
): Promise<GroupObject> {
  const { version, ...input } = readInput(changedGroupInput, given)
  const present = () => groupObject(services, input.group)
  await addCurrentObject(
    () =>
      write(services, input, version, ({ groups }) => {
        const group = groups.get(input.group) ?? groupNotFound(input.group)
        requireVersion(version ?? undefined, groupVersion(group))
        return group
      }),
    present,
  )
  return present()
}

const NAMED = z.object({ group: groupField }, { error: 'expected an object that names a group' })

/** Removes a group that has no members, and that no channel needs. */
export async function deleteGroup(
  services: GroupServices,
  given: z.input<typeof NAMED>,
): Promise<{ readonly group: string }> {
  const { group } = readInput(NAMED, given)
  if (group === DEFAULT_GROUP)
    throw new GatewayError('invalid_request', `group: the group "${group}" cannot be deleted`)
  const { members } = await groupObject(services, group)
  if (members > 0)
    throw new GatewayError('invalid_request', `group: ${members} users belong to "${group}": move them first`)
  await store(services, group, undefined, () => undefined)
  return { group }
}

const MEMBER = z.object({ group: groupField, user: userField }, { error: 'expected a group and a user' })

/** Moves a user to a group, as an operator. Keys that name another group stay in it. */
export async function moveToGroup(
  services: Pick<AdministrationServices, 'store' | 'settings' | 'nowMs' | 'ledger' | 'apiKeys'>,
  given: z.input<typeof MEMBER>,
): Promise<UserObject> {
  const { group, user: idOrName } = readInput(MEMBER, given)
  requireGroup(services.settings(), group)
  const { id: userId } = await findUser(services.store, idOrName)
  const user = (await services.ledger.changeUser({ userId, fields: { group } })) ?? userNotFound(idOrName)
  services.apiKeys.forgetUser(userId)
  return userObject(services, user)
}

/** Stores a group as it is after a change; `before` is the group that is changed. */
function write(
  services: GroupServices,
  { group, ...input }: z.output<typeof newGroupInput>,
  version: string | null | undefined,
  before: (settings: Settings) => Omit<Group, 'name'>,
): Promise<void> {
  return store(services, group, version, (settings) => {
    const present = before(settings)
    requireGuards(settings, input.guards ?? undefined)
    const limit = usageLimitChanges(input, present.budget, settings).budget
    return groupJson({
      ratio: (input.ratio == null ? undefined : parseDecimal(input.ratio)) ?? present.ratio,
      open: input.open ?? present.open,
      guards: input.guards ?? present.guards,
      budget: limit === undefined ? present.budget : (limit ?? undefined),
    })
  })
}

// The stored value is compared again when it is written, because another node may have changed it meanwhile.
function store(
  { store: rows, settings, liveConfig }: GroupServices,
  group: string,
  version: string | null | undefined,
  next: (settings: Settings) => JsonObject | undefined,
): Promise<void> {
  const named = { section: 'groups', name: group } as const
  return repeatIfChanged(version, () => {
    if (liveConfig.declared.groups.has(group)) throw managedByFileError('group', `groups.${group}`)
    let value: JsonObject | undefined
    let present: StoredConfiguration['entries'][number] | undefined
    return liveConfig.change(
      (stored) => {
        value = next(settings())
        const others = stored.entries.filter((one) => one.section !== 'groups' || one.name !== group)
        present = stored.entries.find((one) => one.section === 'groups' && one.name === group)
        return { ...stored, entries: value ? [...others, { ...named, value }] : others }
      },
      () =>
        rows.write('setStoredSettings', {
          changes: [{ ...named, value }],
          expected: [{ ...named, value: present?.value }],
        }),
    )
  })
}

function groupNotFound(group: string): never {
  throw new GatewayError('not_found', `there is no group "${group}"`)
}
