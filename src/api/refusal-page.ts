import { createHash } from 'node:crypto'

const STYLE = `
:root { color-scheme: light dark; font: 14px/1.45 system-ui, 'PingFang SC', 'Noto Sans CJK SC', sans-serif }
body { background: light-dark(#ffffff, #101216); color: light-dark(#1a1d23, #eceef2) }
main { max-width: 26rem; margin: 12vh auto; padding: 0 1rem }
h1 { margin: 0 0 8px; font-size: 20px; line-height: 28px; font-weight: 600 }
p { margin: 0 0 16px; overflow-wrap: anywhere }
small { display: block; color: light-dark(#5c6470, #a0a8b4); font-size: 12px }
a { color: light-dark(#2457c5, #7aa7ff) }
a:focus-visible { outline: 2px solid; outline-offset: 2px }
`

/** Texts of the HTML page that shows an error, by language. */
const TEXTS = {
  en: { lang: 'en', title: 'Sign-in refused', back: 'Back to the console', request: 'Request' },
  zh: { lang: 'zh-CN', title: '登录被拒绝', back: '返回控制台', request: '请求' },
} as const

/** Language of the HTML page that shows an error. */
export type PageLanguage = keyof typeof TEXTS

/** Headers of the HTML page that shows an error. The page loads nothing and sends nothing. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  vary: 'accept, accept-language',
} as const

/**
 * Whether a person sees the response in a browser: browsers accept HTML when they open an address, programs
 * do not.
 */
export function wantsHtmlPage(accept: string | undefined): boolean {
  return accept?.includes('text/html') ?? false
}

/** The language of the HTML page that shows an error: the first one in the browser's `accept-language`. */
export function pageLanguage(acceptLanguage: string | undefined): PageLanguage {
  return acceptLanguage?.trimStart().toLowerCase().startsWith('zh') === true ? 'zh' : 'en'
}

/** Renders an error as an HTML page, with the message of the gateway and a link back. */
export function refusalPage(language: PageLanguage, message: string, requestId: string): Buffer {
  const { lang, title, back, request } = TEXTS[language]
  const sentence = message === '' ? message : message.slice(0, 1).toUpperCase() + message.slice(1)
  return Buffer.from(`<!doctype html>
<html lang="${lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} – Sluice</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${title}</h1>
<p${language === 'en' ? '' : ' lang="en"'}>${escaped(sentence)}.</p>
<p><a href="/">${back}</a></p>
<small>${request} ${escaped(requestId)}</small>
</main>
</body>
</html>
`)
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
