import { describe, expect, test } from 'vitest'
import { isMediaType } from './media-type.ts'

describe('a media type', () => {
  test.each([
    'application/json',
    'text/event-stream; charset=utf-8',
    'text/event-stream;charset=UTF-8',
    'application/vnd.x+json ; a=b; c="d e;f\\"g"',
    'application/json;',
  ])('a valid media type is accepted: %j', (text) => expect(isMediaType(text)).toBe(true))

  test.each([
    '',
    'json',
    'application/',
    '/json',
    'application/json, text/html',
    'application/json; charset',
    'application/json; charset=',
    'application/json; charset="utf-8',
    'application/json; charset="a"b',
    'application/json charset=utf-8',
    'application/js on',
    'text/html<script>',
    'application/json; a="\x80"',
    'application/json\x80',
    ' application/json',
  ])('an invalid media type is refused: %j', (text) => expect(isMediaType(text)).toBe(false))
})
