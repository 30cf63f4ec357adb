import type { z } from 'zod'
import type { KeyedToken } from '../../store/operations/keyed-tokens.ts'
import { offsetOf, type Page, pageSchema } from '../page.ts'
import type { ManagementParts } from '../parts.ts'
import { maskedTokens, tokenSchema } from './token-object.ts'

/** `docs/api.md: Token page`. */
export const tokenPageSchema = pageSchema(tokenSchema)

/** A page of tokens. */
export type TokenPage = z.output<typeof tokenPageSchema>

/** A page of a user's tokens, newest first. */
export async function tokenPage(
  parts: Pick<ManagementParts, 'store' | 'nowMs'>,
  { user: userId, ...page }: Page & { readonly user: number },
): Promise<TokenPage> {
  const found = await parts.store.read('keyedTokenPage', {
    userId,
    offset: offsetOf(page),
    limit: page.pageSize,
  })
  return tokenPageObject(parts, page, found.total, found.tokens)
}

/** Builds a page in responses. */
export async function tokenPageObject(
  parts: Pick<ManagementParts, 'store' | 'nowMs'>,
  page: Page,
  total: number,
  tokens: readonly KeyedToken[],
): Promise<TokenPage> {
  return {
    page: page.page,
    page_size: page.pageSize,
    total,
    items: await maskedTokens(parts, tokens),
  }
}
