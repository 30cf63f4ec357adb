import { conservation } from './conservation.ts'
import { listTokens, tokenById, tokenByKeyHash } from './find-token.ts'
import { countUsers, listUsers, userByAccessToken, userById, userByName } from './find-user.ts'
import { profile } from './profile.ts'
import { revealKey, revealKeys } from './reveal-key.ts'
import { listUsage, usageStretch } from './usage-rows.ts'
import { sumUsageDays, sumUsageStretch, usageByDay } from './usage-totals.ts'

/** Everything that can be asked: each reads one state of the database, whatever is written meanwhile. */
export const reads = {
  conservation,
  countUsers,
  listTokens,
  listUsage,
  listUsers,
  profile,
  revealKey,
  revealKeys,
  sumUsageDays,
  sumUsageStretch,
  tokenById,
  tokenByKeyHash,
  usageByDay,
  usageStretch,
  userByAccessToken,
  userById,
  userByName,
} as const
