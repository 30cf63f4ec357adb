import type { Texts } from './en.ts'
import { account } from './zh/account.ts'
import { advancedChannel } from './zh/advanced-channel.ts'
import { audit } from './zh/audit.ts'
import { batches } from './zh/batches.ts'
import { caches } from './zh/caches.ts'
import { call } from './zh/call.ts'
import { channelKeys } from './zh/channel-keys.ts'
import { channels } from './zh/channels.ts'
import { common } from './zh/common.ts'
import { content } from './zh/content.ts'
import { errors } from './zh/errors.ts'
import { failures } from './zh/failures.ts'
import { groups } from './zh/groups.ts'
import { guards } from './zh/guards.ts'
import { imports } from './zh/imports.ts'
import { incidents } from './zh/incidents.ts'
import { keys, userKeys } from './zh/keys.ts'
import { leaveForm } from './zh/leave-form.ts'
import { limits } from './zh/limits.ts'
import { live } from './zh/live.ts'
import { login } from './zh/login.ts'
import { logs } from './zh/logs.ts'
import { conflict } from './zh/conflict.ts'
import { models } from './zh/models.ts'
import { overview } from './zh/overview.ts'
import { palette } from './zh/palette.ts'
import { period } from './zh/period.ts'
import { playground } from './zh/playground.ts'
import { routing } from './zh/routing.ts'
import { sessions } from './zh/sessions.ts'
import { settings } from './zh/settings.ts'
import { setup } from './zh/setup.ts'
import { shell } from './zh/shell.ts'
import { shortcuts } from './zh/shortcuts.ts'
import { tools } from './zh/tools.ts'
import { usage } from './zh/usage.ts'
import { users } from './zh/users.ts'
import { whatIf } from './zh/what-if.ts'

/** The texts in simplified Chinese, with a file for each page. */
export const texts: Texts = {
  tag: 'zh-CN',
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
