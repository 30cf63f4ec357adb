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
    created_time: row.created_time,
    accessed_time: row.accessed_time,
    expired_time: row.expired_time,
    remain_quota: row.remain_quota,
    unlimited_quota: row.unlimited_quota === 1,
    used_quota: row.used_quota,
    model_limits_enabled: row.model_limits_enabled === 1,
    model_limits: row.model_limits,
    allow_ips: row.allow_ips,
    group: row.group_name,
    vendor_routes: row.vendor_routes,
    ...termsFromRow(row),
    operator_terms: operatorTermsFrom(row.operator_terms),
    deleted_time: row.deleted_time,
  }
}
