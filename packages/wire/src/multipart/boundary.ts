import { WireError } from '../wire-error.ts'

/** Boundary as defined by RFC 2046, 5.1.1. */
const BOUNDARY = /^[\w'()+,./:=? -]{0,69}[\w'()+,./:=?-]$/
const PARAMETER = /;[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))/g

/** Reports whether a content type is `multipart/form-data`. */
export function isForm(contentType: string | undefined): boolean {
  return contentType !== undefined && /^\s*multipart\/form-data\s*(?:;|$)/i.test(contentType)
}

/**
 * Returns the boundary of a content type. Throws `invalid_request` if it is missing, invalid or given twice.
 */
export function boundaryOf(contentType: string): string {
  const stated = [...contentType.matchAll(PARAMETER)].filter(([, name]) => name?.toLowerCase() === 'boundary')
  const [only] = stated
  const boundary = only?.[2]?.replaceAll(/\\(.)/g, '$1') ?? only?.[3] ?? ''
  if (stated.length === 1 && BOUNDARY.test(boundary)) return boundary
  throw new WireError(
    'invalid_request',
    stated.length > 1
      ? 'the content-type of the form states two boundaries'
      : 'the content-type of the form states no valid boundary, as in "multipart/form-data; boundary=…"',
  )
}
