/** A response to `GET /v1/models`, rendered once. */
export function modelList(names: readonly string[]): Buffer {
  return Buffer.from(
    JSON.stringify({
      object: 'list',
      data: names.map((id) => ({ id, object: 'model', created: 1_760_000_000, owned_by: 'acme' })),
    }),
  )
}
