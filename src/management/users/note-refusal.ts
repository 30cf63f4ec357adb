import { GatewayError } from '../../errors.ts'
import type { ManagementParts } from '../parts.ts'

/**
 * Adds a refused sign-in to the audit log. Other errors are no refusals. A log that cannot be written at the
 * moment does not change the response.
 */
export async function noteRefusal(
  { store }: Pick<ManagementParts, 'store'>,
  error: unknown,
  username: string | undefined,
): Promise<void> {
  if (!(error instanceof GatewayError) || error.kind.status >= 500) return
  await store.write('noteRefusedSignIn', { username }).catch(() => {})
}
