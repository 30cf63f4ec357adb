import type { Generated } from 'kysely'
import type { Fields, RecordOf, Row } from '../domain/records/record.ts'

type ColumnsOf<F extends Fields> = {
  [Name in keyof F as keyof Row<Pick<F, Name>>]: F[Name] extends
    | { readonly default: unknown }
    | { readonly key: 'primary' }
    ? Generated<Row<Pick<F, Name>>[keyof Row<Pick<F, Name>>]>
    : Row<Pick<F, Name>>[keyof Row<Pick<F, Name>>]
}

/** Table of a record, for statements. The database fills in the id, and columns that have a default. */
export type TableOf<R> = R extends RecordOf<infer F, infer P> ? ColumnsOf<F> & ColumnsOf<P> : never
