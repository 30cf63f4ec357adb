import { createPrivateKey } from 'node:crypto'

/** Key of a Google service account. */
export interface ServiceAccount {
  readonly email: string
  readonly privateKey: string
  readonly privateKeyId: string | undefined
  readonly project: string | undefined
  readonly tokenUri: string
}

const TOKEN_URI = 'https://oauth2.googleapis.com/token'

/** Parses the JSON of a service account's key; for an invalid text returns what was expected. */
export function parseServiceAccount(text: string): ServiceAccount | { readonly expected: string } {
  const fields = recordOf(text)
  if (!fields) return { expected: "the JSON of a service account's key" }
  const textOf = (name: string): string | undefined => {
    const value = fields[name]
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const email = textOf('client_email')
  const privateKey = textOf('private_key')
  if (email === undefined) return { expected: "a service account's key with client_email" }
  if (privateKey === undefined || !isPrivateKey(privateKey))
    return { expected: "a service account's key with an RSA private_key in PEM" }
  return {
    email,
    privateKey,
    privateKeyId: textOf('private_key_id'),
    project: textOf('project_id'),
    tokenUri: textOf('token_uri') ?? TOKEN_URI,
  }
}

function isPrivateKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'rsa'
  } catch {
    return false
  }
}

function recordOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}
