import { account } from './en/account.ts'
import { advancedChannel } from './en/advanced-channel.ts'
import { audit } from './en/audit.ts'
import { batches } from './en/batches.ts'
import { caches } from './en/caches.ts'
import { call } from './en/call.ts'
import { channelKeys } from './en/channel-keys.ts'
import { channels } from './en/channels.ts'
import { common } from './en/common.ts'
import { content } from './en/content.ts'
import { errors } from './en/errors.ts'
import { failures } from './en/failures.ts'
import { groups } from './en/groups.ts'
import { guards } from './en/guards.ts'
import { imports } from './en/imports.ts'
import { incidents } from './en/incidents.ts'
import { keys, userKeys } from './en/keys.ts'
import { leaveForm } from './en/leave-form.ts'
import { limits } from './en/limits.ts'
import { live } from './en/live.ts'
import { login } from './en/login.ts'
import { logs } from './en/logs.ts'
import { conflict } from './en/conflict.ts'
import { models } from './en/models.ts'
import { overview } from './en/overview.ts'
import { palette } from './en/palette.ts'
import { period } from './en/period.ts'
import { playground } from './en/playground.ts'
import { routing } from './en/routing.ts'
import { sessions } from './en/sessions.ts'
import { settings } from './en/settings.ts'
import { setup } from './en/setup.ts'
import { shell } from './en/shell.ts'
import { shortcuts } from './en/shortcuts.ts'
import { tools } from './en/tools.ts'
import { usage } from './en/usage.ts'
import { users } from './en/users.ts'
import { whatIf } from './en/what-if.ts'

/** The texts in English, with a file for each page. */
export const texts = {
  tag: 'en',
  product: 'Sluice',
  common,
  leave: leaveForm,
  limits,
  conflict,
  errors,
  shell,
  palette,
  shortcuts,
  login,
  overview,
  keys,
  userKeys,
  live,
  logs,
  call,
  content,
  caches,
  sessions,
  channels,
  routing,
  groups,
  guards,
  batches,
  tools,
  failures,
  imports,
  incidents,
  channelKeys,
  advanced: advancedChannel,
  users,
  models,
  period,
  playground,
  usage,
  whatIf,
  audit,
  setup,
  account,
  settings,
}

/** The texts of one language; every language has all of them. */
export type Texts = typeof texts
