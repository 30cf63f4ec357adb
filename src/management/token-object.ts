import type { Token } from '../domain/token.ts'
import { statusAt } from '../domain/token-status.ts'

/** A token as programs see it; `docs/api.md: Token`. */
export interface TokenObject {
  readonly id: number
  readonly user_id: number
  readonly name: string
  /** Masked, but where it was made just now. */
  readonly key: string
  readonly status: number
  readonly created_time: number
  readonly accessed_time: number
  readonly expired_time: number
  readonly remain_quota: number
  readonly unlimited_quota: boolean
  readonly used_quota: number
  readonly model_limits_enabled: boolean
  readonly model_limits: string
  readonly allow_ips: string | null
  readonly group: string
  readonly vendor_routes: string
  readonly DeletedAt: string | null
}

/** A stored token, shown with the status that it has at `nowMs`; `key` is what is shown of its key. */
export function tokenObject(token: Token, key: string, nowMs: number): TokenObject {
  return {
    id: token.id,
    user_id: token.userId,
    name: token.name,
    key,
    status: statusAt(token, token.remainQuota, nowMs),
    created_time: token.createdTime,
    accessed_time: token.accessedTime,
    expired_time: token.expiredTime,
    remain_quota: token.remainQuota,
    unlimited_quota: token.unlimitedQuota,
    used_quota: token.usedQuota,
    model_limits_enabled: token.modelLimitsEnabled,
    model_limits: token.modelLimits,
    allow_ips: token.allowIps,
    group: token.group,
    vendor_routes: token.vendorRoutes,
    DeletedAt: token.deletedTime === null ? null : new Date(token.deletedTime * 1000).toISOString(),
  }
}
