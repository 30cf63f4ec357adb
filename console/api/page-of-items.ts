import type { z } from 'zod'
import type { pageSchema } from '../../src/management/page.ts'

/** A page of items, and the total number of items. */
export type PageOfItems<Item> = z.output<ReturnType<typeof pageSchema<z.ZodType<Item>>>>
