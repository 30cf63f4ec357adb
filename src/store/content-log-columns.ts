import { CONTENT_LOG, type ContentLogColumns } from '../domain/records/content-log.ts'
import type { DeclaredToken } from '../domain/records/token.ts'
import type { DeclaredUser } from '../domain/records/user.ts'

/** Columns for a declared content log (`content_log_…` in gateway.yaml); no columns if it is not declared. */
export function declaredContentColumns({
  content_log_what: what,
  content_log_sample: sample = null,
  content_log_keep: keep = null,
}: Pick<DeclaredUser | DeclaredToken, keyof ContentLogColumns>): Partial<ContentLogColumns> {
  return what === undefined
    ? {}
    : CONTENT_LOG.toRow({ content_log_what: what, content_log_sample: sample, content_log_keep: keep })
}
