import { z } from 'zod'
import { hasResponse } from '../domain/records/usage.ts'
import type { User } from '../domain/records/user.ts'
import { Role } from '../domain/role.ts'
import { packageVersion } from '../domain/version.ts'
import {
  incidents,
  incidentSchema,
  troubledChannels,
  troubledChannelSchema,
} from './channels/channel-health.ts'
import { accountBudgetSchema, accountLimits, recentKeys, recentKeySchema } from './account-limits.ts'
import type { AdministrationServices } from './services.ts'
import { quotaDisplay } from './gateway-status.ts'
import { remainingSchema } from './remaining-spend.ts'
import { userNotFound } from './users/list-users.ts'
import { groupsSchema, profileObject, profileSchema, usableGroupsObject } from './users/user-object.ts'

/** Data that every page of the console needs. `docs/api.md: Console`. */
export const consoleShellSchema = z.object({
  user: profileSchema,
  version: z.string(),
  node: z.string(),
  server_time: z.int().describe('Unix seconds'),
  display: z.object({
    kind: z.enum(['USD', 'CNY', 'TOKENS']),
    quota_per_unit: z.int().describe('Quota units in one US dollar'),
    usd_exchange_rate: z.number().describe('CNY per USD'),
  }),
  groups: groupsSchema,
  limits: z.object({ max_user_tokens: z.int(), usage_log_days: z.int(), slot_days: z.int() }),
  setup: z.object({ has_channel: z.boolean(), has_own_key: z.boolean(), has_call: z.boolean() }),
  counts: z.object({ resting_channels: z.int().nullable().describe('null below role 10') }),
  ...remainingSchema,
  budgets: z.array(accountBudgetSchema).describe("those that bind the account's calls"),
  recent_keys: z.array(recentKeySchema).describe('the five keys of the account that were used last'),
  troubled_channels: z.array(troubledChannelSchema).nullable().describe('null below role 10'),
  incidents: z.array(incidentSchema).nullable().describe('null below role 10'),
  refused_configuration: z
    .object({
      at: z.int().describe('Unix seconds'),
      message: z.string().describe('the first mistake, with file and line'),
      mistakes: z.int(),
    })
    .nullable()
    .describe(
      'a configuration file that differs from the running one, because it was refused; null below role 10',
    ),
})

/** Number of most recent calls, of all users, among which one with a response is looked for. */
const SEARCHED_CALLS = 20

/** Collects the data that every page of the console needs. */
export async function consoleShell(
  services: AdministrationServices,
  user: User,
): Promise<z.output<typeof consoleShellSchema>> {
  const { store, node, nowMs } = services
  const settings = services.settings()
  const isAdmin = user.role >= Role.admin
  const [profile, { total, keys }, troubled] = await Promise.all([
    store.read('managedUser', { userId: user.id }),
    recentKeys(services, user.id),
    isAdmin ? troubledChannels(services) : null,
  ])
  if (!profile) return userNotFound(user.id)
  const { quota_per_unit, display, usd_exchange_rate } = quotaDisplay(settings)
  return {
    user: await profileObject(services, profile),
    version: packageVersion(),
    node,
    server_time: Math.floor(nowMs() / 1000),
    display: { kind: display, quota_per_unit, usd_exchange_rate },
    groups: usableGroupsObject(settings, user),
    limits: {
      max_user_tokens: settings.options.max_user_tokens,
      usage_log_days: settings.options.usage_log_days,
      slot_days: settings.options.slot_days,
    },
    setup: {
      has_channel: settings.channels.length > 0,
      has_own_key: total > 0,
      has_call: profile.request_count > 0 || (isAdmin && (await hasCall(services))),
    },
    counts: { resting_channels: troubled && troubled.filter(({ state }) => state === 'resting').length },
    ...(await accountLimits(services, profile)),
    recent_keys: keys,
    troubled_channels: troubled,
    incidents: isAdmin ? await incidents(services) : null,
    refused_configuration: isAdmin ? refusedConfiguration(services) : null,
  }
}

function refusedConfiguration({
  liveConfig: { refused },
}: Pick<AdministrationServices, 'liveConfig'>): z.output<typeof consoleShellSchema>['refused_configuration'] {
  if (!refused) return null
  return { at: Math.floor(refused.atMs / 1000), message: refused.message, mistakes: refused.mistakes }
}

/** Whether a recent call of any user had a response. */
async function hasCall({ store }: Pick<AdministrationServices, 'store'>): Promise<boolean> {
  const { entries } = await store.read('scanUsage', { filter: {}, after: null, maxRows: SEARCHED_CALLS })
  return entries.some(hasResponse)
}
