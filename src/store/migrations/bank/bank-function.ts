/** A function of the bank, in PL/pgSQL. */
export interface BankFunction {
  /** With its parameters. */
  readonly name: string
  readonly returns: string
  readonly body: string
}

/**
 * Makes the function: it runs with its owner's rights and finds nothing but the tables of that schema,
 * whoever calls it; and nobody may call it until that is granted.
 */
export function statementsOf({ name, returns, body }: BankFunction, schema: string): readonly string[] {
  return [
    `create function ${name} returns ${returns} language plpgsql security definer
       set search_path = pg_catalog, ${quoted(schema)}, pg_temp as $bank$${body}
$bank$`,
    `revoke all on function ${signature(name)} from public`,
  ]
}

/** The function's name and the types of its parameters, as grants want it. */
export function signature(name: string): string {
  const [, called = '', parameters = ''] = /^(\w+)\((.*)\)$/s.exec(name) ?? []
  const types = parameters.split(',').map((parameter) => parameter.trim().split(' ').slice(1).join(' '))
  return `${called}(${types.join(', ')})`
}

/** A name in SQL. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
