import type { Token, TokenStatus } from '../domain/token.ts'
import { operatorTermsFrom, termsFromRow } from './term-columns.ts'
import type { TokenRow } from './schema.ts'

/** Converts a stored token, without its key. */
export function tokenFromRow(row: Omit<TokenRow, 'key_hash' | 'key_cipher'>): Token {
  return {
    id: row.id,
    userId: row.user_id,
    name: row.name,
    status: row.status as TokenStatus,
    createdTime: row.created_time,
    accessedTime: row.accessed_time,
    expiredTime: row.expired_time,
    remainQuota: row.remain_quota,
    unlimitedQuota: row.unlimited_quota === 1,
    usedQuota: row.used_quota,
    modelLimitsEnabled: row.model_limits_enabled === 1,
    modelLimits: row.model_limits,
    allowIps: row.allow_ips,
    group: row.group_name,
    vendorRoutes: row.vendor_routes,
    ...termsFromRow(row),
    operatorTerms: operatorTermsFrom(row.operator_terms),
    deletedTime: row.deleted_time,
  }
}
