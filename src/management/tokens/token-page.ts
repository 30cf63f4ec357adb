import type { z } from 'zod'
import type { KeyedToken } from '../../store/operations/keyed-tokens.ts'
import { offsetOf, type Page, pageSchema } from '../page.ts'
import type { ManagementParts } from '../parts.ts'
import { maskedToken, tokenSchema } from './token-object.ts'

/** `docs/api.md: Token page`. */
export const tokenPageSchema = pageSchema(tokenSchema)

/** A page of tokens. */
export type TokenPage = z.output<typeof tokenPageSchema>

/** A page of a user's tokens, newest first. */
export async function tokenPage(
  { store, nowMs }: ManagementParts,
  { user: userId, ...page }: Page & { readonly user: number },
): Promise<TokenPage> {
  const found = await store.read('keyedTokenPage', { userId, offset: offsetOf(page), limit: page.pageSize })
  return tokenPageObject(page, found.total, found.tokens, nowMs())
}

/** Builds a page in responses. */
export function tokenPageObject(
  page: Page,
  total: number,
  tokens: readonly KeyedToken[],
  nowMs: number,
): TokenPage {
  return {
    page: page.page,
    page_size: page.pageSize,
    total,
    items: tokens.map((token) => maskedToken(token, nowMs)),
  }
}
