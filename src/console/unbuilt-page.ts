/** The page in place of a console that is not built. */
export const UNBUILT_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sluice</title>
<style nonce="{{nonce}}">
:root { color-scheme: light dark; font: 14px/1.45 system-ui, sans-serif }
main { max-width: 34rem; margin: 12vh auto; padding: 0 1rem }
code { font: 13px ui-monospace, monospace }
</style>
</head>
<body>
<main>
<h1>Sluice</h1>
<p>The gateway runs. Its console is not built here, because the tools that build it were left out of the installation.</p>
<p>To get it, run <code>npm ci</code> in the folder of the gateway, without <code>--omit=dev</code> and
<code>--ignore-scripts</code>, or <code>npm run console</code> where the tools are there; then reload this page.</p>
<p>To turn this page off, set <code>console: false</code> under <code>options</code> in gateway.yaml.</p>
</main>
</body>
</html>
`
