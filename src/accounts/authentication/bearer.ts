const BEARER = /^bearer +(\S+) *$/i

/** The key in an `Authorization: Bearer …` header, if there is one. */
export function bearerKey(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : BEARER.exec(authorization)?.[1]
}
