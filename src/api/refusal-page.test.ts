import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { PAGE_HEADERS, pageLanguage, refusalPage, wantsHtmlPage } from './refusal-page.ts'

test('the message on the page of a refused sign-in is plain text, whatever it contains', () => {
  const page = refusalPage('en', 'the claim "<img onerror=alert(1)>" is missing', 'id').toString()
  expect(page).toContain('The claim &#34;&#60;img onerror=alert(1)&#62;&#34; is missing.')
  expect(page).not.toContain('<img')
})

test('the style of the page of a refused sign-in is the one that its content security policy permits', () => {
  const [, style = ''] = /<style>([^]*)<\/style>/.exec(refusalPage('zh', '', 'id').toString()) ?? []
  const digest = createHash('sha256').update(style).digest('base64')
  expect(PAGE_HEADERS['content-security-policy']).toContain(`'sha256-${digest}'`)
})

test.each([
  ['text/html,application/xhtml+xml', true],
  ['*/*', false],
  ['application/json', false],
  [undefined, false],
])('a client that accepts %s wants a page: %s', (accept, isPage) => {
  expect(wantsHtmlPage(accept)).toBe(isPage)
})

test.each([
  ['zh-CN,zh;q=0.9', 'zh'],
  ['en,zh;q=0.9', 'en'],
  [undefined, 'en'],
])('the language of a refusal page follows the header accept-language: %s gives %s', (header, language) => {
  expect(pageLanguage(header)).toBe(language)
})
